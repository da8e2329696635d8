const firstMs = 100;
const longestMs = 5000;

/** Calls stop when the signal is aborted, at once where it is, until the function that it returns is called. */
export function onAbort(signal, stop) {
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  return () => signal.removeEventListener("abort", stop);
}

/** Waits between attempts, from 0: each time up to twice as long, at random, and leastMs at least. A signal ends it. */
export async function pause(attempt, signal, leastMs = 0) {
  const ms = Math.max(leastMs, Math.random() * Math.min(firstMs * 2 ** attempt, longestMs));
  let timer;
  let off;
  await new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
    off = onAbort(signal, resolve);
  });
  clearTimeout(timer);
  off();
}

/** A name that nobody can guess, in hexadecimal digits. */
export const newName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
