# judge.mjs
