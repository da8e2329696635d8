`${new DOMException("warm", "AbortError")}`;
new DOMException("warm").stack;
