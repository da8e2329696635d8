// The codec wakes this part, so whoever makes the code cache has it write and read such values (sandbox/snapshot.go).
(() => {})();
