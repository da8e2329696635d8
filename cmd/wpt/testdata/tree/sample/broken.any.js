test(() => {}, "before the error");
throw new RangeError("at the top");
