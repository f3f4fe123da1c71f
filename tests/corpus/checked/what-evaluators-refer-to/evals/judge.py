# judge.py
