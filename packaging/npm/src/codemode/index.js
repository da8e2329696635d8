export { CodemodeExecutor } from "./executor.js";
export { sanitizeToolName } from "./names.js";
export { normalizeCode } from "./normalize.js";
