export { CodemodeExecutor } from "./executor.js";
export { limitResult } from "./limit.js";
export { sanitizeToolName } from "./names.js";
export { normalizeCode } from "./normalize.js";
