// Domain to ASCII for names that need the tables of Unicode (UTS #46, https://www.unicode.org/reports/tr46/), with the
// settings of the URL Standard (https://url.spec.whatwg.org/#concept-domain-to-ascii, beStrict false). The tables are
// most of this part: it is loaded for the first such name.

import { toASCII as domainToASCII } from "tr46";

export default function idna() {
  const options = {
    checkHyphens: false, checkBidi: true, checkJoiners: true, useSTD3ASCIIRules: false, transitionalProcessing: false,
    verifyDNSLength: false, ignoreInvalidPunycode: false,
  };
  return { __proto__: null, toASCII: (domain) => domainToASCII(domain, options) };
}
