// A handler for one of the application's own message types, 128 to 255: sends each message back to where it came from,
// or with "forward" hands it on to the provider(s) of its service code.
//
//   "modules": { "messageTypes": { "128": { "path": "../examples/message-types/echo.mjs" } } }
//
// A subscriber sends one with client.send(128, code, body) and hears of the answer by client.on('application', …).

/** @returns {import('@trunkline/dispatcher').ApplicationHandler} */
export default function echo({ forward = false } = {}) {
  return {
    onMessage(message, context) {
      // forward tells how many providers it went to
      if (forward && context.forward() > 0) return;
      context.reply(message.type, message.body);
    },
  };
}
