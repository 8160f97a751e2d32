// Hears of probes: a provider has answered one, or has sent one by itself. One JSON line for each on standard error.
//
//   "modules": { "onProbe": { "log": { "path": "../examples/on-probe/log.mjs" } } },
//   "services": [{ "code": 1001, "probeAfter": "5s", "onProbe": "log" }]
//
// It runs on the dispatcher's own thread: it must not wait for anything.

/** @returns {import('@trunkline/dispatcher').ProbeListener} */
export default function log() {
  return {
    // the params are bytes, one character each
    onProbe({ code, provider, params, reply }) {
      const text = new TextDecoder().decode(Uint8Array.from(params, (char) => char.charCodeAt(0)));
      process.stderr.write(
        `${JSON.stringify({ msg: reply ? 'probe answered' : 'probed', code, provider, params: text })}\n`,
      );
    },
  };
}
