"""Where the stages meet; every command is a stretch of these modules.

files → load → validate → compile → plan → execute ⇄ evaluate → results → report
        `checking`       `compiling`      `running`
"""
