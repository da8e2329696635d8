console.log("fault:abort");
test(() => {}, "too late");
