// What a model might write when it is given tools of two providers, orders_api and rates.
async ({ minimum = 0 } = {}) => {
  const orders = await orders_api.list({ status: "open" });
  console.log("open orders:", orders.length);

  const big = orders.filter((order) => order.total >= minimum);
  const converted = await Promise.all(
    big.map((order) => rates.convert({ amount: order.total, from: order.currency, to: "EUR" })),
  );

  try {
    await orders_api.archive({ id: big[0].id });
  } catch (error) {
    console.warn("not archived:", error.message);
  }

  return {
    count: big.length,
    totalEUR: converted.reduce((sum, amount) => sum + amount, 0),
    byCurrency: Object.groupBy(big, (order) => order.currency),
  };
};
