check() { # name, expected, arguments
  name=$1 expected=$2; shift 2
  found=$(sh shop/total.sh "$@")
  if [ "$found" = "$expected" ]; then echo "<testcase classname='total' name='$name'/>"; else
    echo "<testcase classname='total' name='$name'><failure message='$found, not $expected'/></testcase>"; fi
}
{ echo "<testsuite>"; check none 0; check two 7 3 4; echo "</testsuite>"; } > "$1"
