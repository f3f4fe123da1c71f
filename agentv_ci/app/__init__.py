"""Where the stages meet: one module per command, and what they share.

files → load → validate → compile → plan → execute ⇄ evaluate → results → report
        `validate`        `compile`        `run`                          `report`
"""
