// navigator (HTML, 8.10.1, https://html.spec.whatwg.org/#the-navigator-object; ECMA-429 asks for userAgent). The answers
// are the same everywhere, so that programs learn nothing about the machine.

export default function navigator(core) {
  const { finish, freeze, illegalConstructor } = core;
  const token = {};
  const languages = freeze(["en-US"]);

  class Navigator {
    #brand = true;
    constructor(key = undefined) {
      if (key !== token) throw illegalConstructor();
    }
    get userAgent() { this.#brand; return "Executor"; }
    get language() { this.#brand; return "en-US"; }
    get languages() { this.#brand; return languages; }
    get hardwareConcurrency() { this.#brand; return 1; }
    get appCodeName() { this.#brand; return "Mozilla"; }
    get appName() { this.#brand; return "Netscape"; }
    get appVersion() { this.#brand; return "Executor"; }
    get platform() { this.#brand; return ""; }
    get product() { this.#brand; return "Gecko"; }
  }
  finish(Navigator, { __proto__: null, name: "Navigator" });

  return { __proto__: null, Navigator, navigator: new Navigator(token) };
}
