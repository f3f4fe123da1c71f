# Both agents know the first answers; of the others, the careful one is wrong in one, and the hasty one crashes in all.
case $ARM-$1 in
  *-question-[12]) echo yes ;;
  careful-question-12) echo no ;;
  careful-*) echo yes ;;
  *) echo 'no memory left' >&2; exit 3 ;;
esac
