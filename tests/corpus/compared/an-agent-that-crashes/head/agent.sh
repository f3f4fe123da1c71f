# Answers the first trial of a case, and crashes in the others.
[ -e "rolls-$1" ] && { echo 'no memory left' >&2; exit 3; }
touch "rolls-$1"
echo yes
