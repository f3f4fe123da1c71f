"""The names of schemas that authors write as `$schema`."""

EVAL_SCHEMA = "agentv-eval-v2"
TARGETS_SCHEMAS = ("agentv-targets-v2.2", "agentv-targets-v2")
CONFIG_SCHEMA = "agentv-config-v2"
JUDGE_SET_SCHEMA = "agentv-judge-set-v1"
QUARANTINE_SCHEMA = "agentv-quarantine-v1"
EXPERIMENT_SCHEMA = "agentv-experiment-v1"
