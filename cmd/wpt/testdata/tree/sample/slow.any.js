test(() => {}, "quick");
promise_test(() => new Promise(() => {}), "never ends");
