test(() => {}, "excluded");
