// The share of `config.words` that the answer mentions; with --ignore-case, in any case.
import { readFileSync } from "node:fs";

const { candidate_answer: answer, config } = JSON.parse(readFileSync(0, "utf-8"));
const fold = process.argv.includes("--ignore-case") ? (text) => text.toLowerCase() : (text) => text;
const hits = config.words.filter((word) => fold(answer).includes(fold(word)));
const misses = config.words.filter((word) => !hits.includes(word));
console.log(
  JSON.stringify({
    score: hits.length / config.words.length,
    hits: hits.map((word) => `mentions '${word}'`),
    misses: misses.map((word) => `does not mention '${word}'`),
  }),
);
