// Decodes one text of each kind.

(() => {
  new TextDecoder("windows-1252").decode(new Uint8Array([97, 128, 233]));
  new TextDecoder("shift_jis").decode(new Uint8Array([0x82, 0xa0]));
})();
