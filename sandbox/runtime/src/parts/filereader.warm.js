(() => {
  const reader = new FileReader();
  reader.onload = () => reader.result;
  reader.onloadend = (event) => event.loaded;
  reader.readAsText(new Blob(["a"]));
  reader.abort();
  new FileReader().readAsDataURL(new Blob(["a"], { type: "text/plain" }));
})();
