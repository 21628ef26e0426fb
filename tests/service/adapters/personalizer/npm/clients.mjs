// Drives the two npm clients: node clients.mjs CLIENT URL, the calls as JSON on standard input, results on standard
// output. A call is [operation, argument, ...]; a result is {status, body} or {status, code} where the client threw.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(process.cwd() + "/");
const [which, url] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(0, "utf8"));

function cognitive() {
  const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
  const { ApiKeyCredentials } = require("@azure/ms-rest-js");
  const key = new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": "secret" } });
  const client = new PersonalizerClient(key, url);
  const told = (result) => {
    const { _response, ...body } = result ?? {};
    return { status: _response.status, body: body.body === undefined ? body : body.body };
  };
  return {
    rank: async (body) => told(await client.rank(body)),
    reward: async (id, value) => told(await client.events.reward(id, { value })),
    activate: async (id) => told(await client.events.activate(id)),
  };
}

function rest() {
  const make = require("@azure-rest/ai-personalizer");
  const client = make.default(url, { key: "secret" }, { allowInsecureConnection: true });
  const told = (result) => ({
    status: Number(result.status),
    body: result.body instanceof Uint8Array ? Buffer.from(result.body).toString("base64") : result.body,
    unexpected: make.isUnexpected(result),
  });
  return {
    rank: async (body) => told(await client.path("/rank").post({ body })),
    reward: async (id, value) => told(await client.path("/events/{eventId}/reward", id).post({ body: { value } })),
    activate: async (id) => told(await client.path("/events/{eventId}/activate", id).post()),
    get: async (path, ...ids) => told(await client.path(path, ...ids).get()),
    put: async (path, body) => told(await client.path(path).put({ body })),
    post: async (path, body, ...ids) => told(await client.path(path, ...ids).post({ body })),
    delete: async (path, ...ids) => told(await client.path(path, ...ids).delete()),
  };
}

const client = which === "cognitive" ? cognitive() : rest();
const results = [];
for (const [operation, ...given] of calls) {
  try {
    results.push(await client[operation](...given));
  } catch (error) {
    results.push({ status: error.statusCode ?? 0, code: error.body?.error?.code ?? String(error) });
  }
}
console.log(JSON.stringify(results));
