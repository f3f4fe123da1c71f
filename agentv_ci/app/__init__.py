"""The work of each command: one module per command, which joins the stages, and what they share.

files → load → validate → compile → plan → execute ⇄ evaluate → results → report
        `validate`        `compile`        `run`                          `report`
"""
