function total(items) {
  var sum = 0;
  for (var i = 0; i < items.length; i++) {
    if (items[i].price != null) sum += items[i].price * items[i].quantity;
  }
  return sum;
}
