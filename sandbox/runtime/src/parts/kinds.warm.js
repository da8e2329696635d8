new MessageEvent("warm", { data: 1 });
