import { ExecutorError } from "./errors.js";

const firstMs = 100;
const longestMs = 5000;

/** Why what did not come in its time was given up. */
export const late = "it takes too long";

/** Calls stop when the signal is aborted, at once where it is, until the function that it returns is called. */
export function onAbort(signal, stop) {
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  return () => signal.removeEventListener("abort", stop);
}

/** The error of what a signal ended. */
export const cancelled = ({ reason }) => new ExecutorError("cancelled", String(reason?.message ?? "cancelled by the caller"), { ran: false });

/** promise, or the rejection of a signal that comes first. */
export function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const off = onAbort(signal, () => reject(cancelled(signal)));
    promise.then(resolve, reject).finally(off);
  });
}

/**
 * Calls run(signal) until it resolves, and resolves to that: for ms at most, or until signal is aborted, of which run is told by
 * a signal of its own. It rejects with the error of the last attempt, the first that again(error) gives up.
 */
export async function persist(run, ms, signal, again) {
  const until = Date.now() + ms;
  const over = new AbortController();
  let wake; // ends a pause
  const stop = () => {
    over.abort();
    wake?.();
  };
  // AbortSignal.any of an AbortSignal.timeout is never aborted where Node 20 collects the latter.
  const timer = setTimeout(stop, ms);
  const off = onAbort(signal, stop);
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        return await run(over.signal);
      } catch (error) {
        const least = error.retryAfterMs ?? 0;
        if (!again(error) || over.signal.aborted || Date.now() + least >= until) throw error;
        const pause = Math.max(least, Math.random() * Math.min(firstMs * 2 ** attempt, longestMs)); // so that not all come again at once
        let waiting;
        await new Promise((resolve) => {
          wake = resolve;
          waiting = setTimeout(wake, pause);
        });
        clearTimeout(waiting);
      }
    }
  } finally {
    clearTimeout(timer);
    off();
  }
}

/** A name that nobody can guess, in digits. */
export const newName = () => crypto.getRandomValues(new Uint32Array(4)).join("");
