# judge.sh
