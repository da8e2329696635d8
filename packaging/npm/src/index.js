export { ExecutorError, errorTypes } from "./errors.js";
export { RemoteExecutor } from "./executor.js";
export { decode } from "./values/decode.js";
export { encode } from "./values/encode.js";
export { Handle, ValueError } from "./values/classes.js";
