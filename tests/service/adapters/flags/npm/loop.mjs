// OpenFeature's server SDK over OFREP, unmodified: users who click, and reports of it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const [, , url, tracking, given] = process.argv;
const require = createRequire(pathToFileURL(process.cwd() + "/"));
const { OpenFeature } = require("@openfeature/server-sdk");
const { OFREPProvider } = require("@openfeature/ofrep-provider");
const { Tracking } = await import(pathToFileURL(tracking));
const { users, seed, headers, rates } = JSON.parse(given);

const client = OpenFeature.getClient(), report = new Tracking(url, headers);
const provider = new OFREPProvider({ baseUrl: url, headers: Object.entries(headers) });
await OpenFeature.setProviderAndWait(report.into(provider));
let state = seed;
const random = () => ((state = (state * 1103515245 + 12345) % 2147483648), state / 2147483648);
const shown = [];
for (let i = 0; i < users; ++i) {
  const context = { targetingKey: `user ${i}`, device: random() < 0.5 ? "phone" : "tv" };
  const found = await client.getBooleanDetails("banner", false, context);
  const again = i % 50 === 0 ? await client.getBooleanDetails("banner", false, context) : found;
  if (again.value !== found.value || !found.flagMetadata.decision) throw new Error(JSON.stringify([found, again]));
  shown.push(found.value ? 1 : 0);
  const event = { flag: "banner", decision: found.flagMetadata.decision };
  if (random() < rates[found.value ? 1 : 0]) await report.track("click", context, { ...event, final: true });
  else await report.track("exposure", context, event);
}
const typed = [
  await client.getStringDetails("words", "none", { targetingKey: "one" }),
  await client.getNumberDetails("price", 0, { targetingKey: "one" }),
  await client.getObjectDetails("layout", {}, { targetingKey: "one" }),
  await client.getBooleanDetails("nothing", true, { targetingKey: "one" }),
  await client.getBooleanDetails("banner", true, {}),
];
const silent = new Tracking("http://127.0.0.1:9"); // nobody hears an exposure there
OpenFeature.addHooks(silent.exposures);
typed.push(await client.getStringDetails("words", "none", { targetingKey: "two" }));
OpenFeature.clearHooks();
await client.track("purchase", { targetingKey: "one" }, { flag: "price", value: 0.25 });
console.log(JSON.stringify({ shown, typed }));
