"""A placeholder for your agent: reads the prompt from a file and prints an answer."""

import sys
from pathlib import Path

prompt = Path(sys.argv[1]).read_text(encoding="utf-8")
print("Your name is Ada." if "What is my name?" in prompt else "The capital of France is Paris.")
