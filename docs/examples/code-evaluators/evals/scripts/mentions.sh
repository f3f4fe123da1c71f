#!/usr/bin/env bash
# 1 when the answer mentions all of `config.words`, else 0. Bash has no JSON; jq is on every runner of GitHub.
set -euo pipefail
case=$(cat)
missing=$(jq -c '.candidate_answer as $answer
  | [.config.words[] | select(. as $word | $answer | contains($word) | not)]' <<<"$case")
if [ "$missing" = "[]" ]; then
  echo '{"score": 1, "hits": ["mentions everything"]}'
else
  jq -n --argjson missing "$missing" '{score: 0, misses: ($missing | map("does not mention " + .))}'
fi
