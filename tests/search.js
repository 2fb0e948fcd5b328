// Asks the search of a built site as its pages do: the site's own worker, with its own index.
// node search.js SITE QUERY... prints, for each query, the addresses of the hits, best first.
"use strict";

const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...queries] = process.argv.slice(2);
const folder = path.join(site, "assets", "javascripts", "workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const INDEX = 0, QUERY = 2, RESULT = 3; // kinds of messages between a page and the worker

const waiting = [];
globalThis.self = { postMessage: (message) => waiting.shift()(message) };
vm.runInThisContext(fs.readFileSync(path.join(folder, worker), "utf8"));
const send = (type, data) => new Promise((answer) => {
  waiting.push(answer);
  self.onmessage({ data: { type, data } });
});

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8"));
  await send(INDEX, index);
  const hits = {};
  for (const input of queries) {
    const { type, data } = await send(QUERY, { input });
    if (type !== RESULT) throw new Error(`The search for ${input} failed.`);
    hits[input] = data.items.map(({ id }) => index.items[id].location);
  }
  console.log(JSON.stringify(hits));
})();
