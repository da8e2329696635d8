// As much of the suite's harness as the tests of the runner need, with the same names and the same moments.
(function () {
  const tests = [], onResult = [], onCompletion = [];
  let running = 0, loaded = false, completed = false;

  function complete(status, message) {
    if (completed) return;
    completed = true;
    for (const f of onCompletion) f(tests, { status, message });
  }
  function settle(test, status, message) {
    if (test.status !== null) return;
    test.status = status;
    test.message = message;
    for (const f of onResult) f(test);
    running--;
    if (loaded && running === 0) complete(0, null);
  }
  function start(name) {
    running++;
    const test = { name, status: null, message: null };
    tests.push(test);
    return test;
  }

  Object.assign(globalThis, {
    add_result_callback: (f) => onResult.push(f),
    add_completion_callback: (f) => onCompletion.push(f),
    test(f, name) {
      const t = start(name);
      try {
        f();
        settle(t, 0, null);
      } catch (error) {
        settle(t, 1, String(error));
      }
    },
    promise_test(f, name) {
      const t = start(name);
      Promise.resolve().then(f).then(() => settle(t, 0, null), (error) => settle(t, 1, String(error)));
    },
    timeout() {
      for (const t of tests) if (t.status === null) Object.assign(t, { status: 2, message: "timed out" });
      complete(2, "timed out");
    },
    done: () => complete(0, null),
  });
  setTimeout(() => {
    loaded = true;
    if (running === 0) complete(0, null);
  });
})();
