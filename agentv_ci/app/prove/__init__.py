"""Proofs that evaluators notice wrong answers."""
