// Runs once after the library while the startup snapshot is built, so that the code of typical calls is in it already
// compiled. The host is not asked for anything yet (see index.js). It leaves no trace: what it starts it stops.

(() => {
  console.log("warm", 1, true, null, undefined);
  console.error("e");
  console.info("i");
  console.warn("w");
  console.debug("d");
  clearTimeout(setTimeout(() => {}, 1, 2));
  clearInterval(setInterval(() => {}, 1));
})();
