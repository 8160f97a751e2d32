// A send handler: each new request goes to the provider that serves the fewest streams, the first of several such.
//
//   "modules": { "sendHandlers": { "leastLoaded": { "path": "../examples/send-handlers/least-loaded.mjs" } } },
//   "services": [{ "code": 1001, "sendHandler": "leastLoaded" }]
//
// The module's default export is called once, with the `options` of the configuration, and returns the handler. The
// dispatcher asks it at the first request of a stream and when the stream has to move because its provider is gone.

/** @returns {import('@trunkline/dispatcher').SendHandler} */
export default function leastLoaded() {
  return {
    // `up` has at least one provider, in the order of the configuration or of the offers
    choose: (_request, up) => [up.reduce((best, provider) => (provider.load < best.load ? provider : best))],
  };
}
