sed 's/sum - each/sum + each/' shop/total.sh > "$TMPDIR/total.sh" && cat "$TMPDIR/total.sh" > shop/total.sh
printf '{"orders": [{"id": 1, "paid": true}, {"id": 2, "paid": true}]}\n' > orders.json
echo "The sum was a difference."
