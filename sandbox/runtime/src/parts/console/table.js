// console.table (WHATWG Console, 1.1.7): rows and columns of tabular data in a box. Only data properties are read.

import { inspectNested } from "./inspect.js";
import {
  getOwnPropertyDescriptor,
  hasOwn,
  join,
  list,
  mapEntries,
  mapGet,
  mapIteratorNext,
  mapSet,
  mapSize,
  max,
  push,
  SafeMap,
  setIteratorNext,
  setSize,
  setValues,
  stringPadEnd,
  stringRepeat,
} from "../../primordials.js";
import { ownData, shownKeys } from "../../reflect.js";

const maxRows = 1000;
const maxColumns = 50;
const valueColumn = "Values";

const isObject = (value) => typeof value === "object" && value !== null;

/** Returns table(data, columns): the text, or undefined where data is not tabular. columns is a list of names or undefined. */
export function makeTable(native, settings) {
  const cell = (value) => inspectNested(native, settings, value, 0);
  const isPlain = (value) => isObject(value) && native.classOf(value) !== "Proxy";

  return function table(data, columns) {
    if (!isPlain(data)) return undefined;
    const { label, rows } = readRows(native.classOf(data), data);
    const header = list();
    push(header, label);
    const places = new SafeMap(); // column name to its place in a line
    const fixed = columns !== undefined;
    for (let i = 0; fixed && i < columns.length; i++) placeOf(places, header, columns[i]);
    const lines = list();
    let hasValues = false;
    for (let i = 0; i < rows.length; i++) {
      const line = { __proto__: null, key: rows[i][0], cells: new SafeMap(), value: undefined };
      const value = rows[i][1];
      if (isPlain(value)) {
        readCells(value, line.cells, places, header, fixed, cell);
      } else {
        line.value = cell(value);
        hasValues = true;
      }
      push(lines, line);
    }
    if (hasValues) push(header, valueColumn);
    return draw(header, lines, hasValues);
  };
}

function readRows(kind, data) {
  const rows = list();
  if (kind === "Map") {
    const iterator = mapEntries(data);
    for (let i = 0; i < mapSize(data) && i < maxRows; i++) push(rows, [`${i}`, mapIteratorNext(iterator).value[1]]);
    return { label: "(iteration index)", rows };
  }
  if (kind === "Set") {
    const iterator = setValues(data);
    for (let i = 0; i < setSize(data) && i < maxRows; i++) push(rows, [`${i}`, setIteratorNext(iterator).value]);
    return { label: "(iteration index)", rows };
  }
  const keys = shownKeys(data, false);
  for (let i = 0; i < keys.length && i < maxRows; i++) {
    if (typeof keys[i] === "string") push(rows, [keys[i], ownData(data, keys[i])]);
  }
  return { label: "(index)", rows };
}

function placeOf(places, header, name) {
  let place = mapGet(places, name);
  if (place === undefined && header.length <= maxColumns) {
    place = header.length;
    push(header, name);
    mapSet(places, name, place);
  }
  return place;
}

function readCells(row, cells, places, header, fixed, cell) {
  const keys = shownKeys(row, false);
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] !== "string") continue;
    const place = fixed ? mapGet(places, keys[i]) : placeOf(places, header, keys[i]);
    if (place === undefined) continue;
    const found = getOwnPropertyDescriptor(row, keys[i]);
    mapSet(cells, place, hasOwn(found, "value") ? cell(found.value) : "[Getter]");
  }
}

function draw(header, lines, hasValues) {
  const grid = list();
  push(grid, header);
  for (let i = 0; i < lines.length; i++) push(grid, gridLine(lines[i], header.length, hasValues));
  const widths = list();
  for (let c = 0; c < header.length; c++) {
    let width = 0;
    for (let r = 0; r < grid.length; r++) width = max(width, grid[r][c].length);
    push(widths, width + 2);
  }
  const out = list();
  push(out, rule(widths, "┌", "┬", "┐"));
  for (let r = 0; r < grid.length; r++) {
    push(out, rowText(grid[r], widths));
    if (r === 0) push(out, rule(widths, "├", "┼", "┤"));
  }
  push(out, rule(widths, "└", "┴", "┘"));
  return join(out, "\n");
}

function gridLine(line, columns, hasValues) {
  const cells = list();
  push(cells, line.key);
  for (let c = 1; c < columns; c++) push(cells, mapGet(line.cells, c) ?? "");
  if (hasValues) cells[columns - 1] = line.value ?? "";
  return cells;
}

function rule(widths, left, middle, right) {
  const pieces = list();
  for (let c = 0; c < widths.length; c++) push(pieces, stringRepeat("─", widths[c]));
  return left + join(pieces, middle) + right;
}

function rowText(cells, widths) {
  const pieces = list();
  for (let c = 0; c < cells.length; c++) push(pieces, stringPadEnd(` ${cells[c]}`, widths[c]));
  return `│${join(pieces, "│")}│`;
}
