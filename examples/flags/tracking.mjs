// Outcomes for flags that armwise answers: what OpenFeature's track() has, sent where the protocol has no endpoint.
//
//   const tracking = new Tracking("http://127.0.0.1:8484", { "X-API-Key": key });
//   OpenFeature.addHooks(tracking.exposures);           // every evaluation was shown; leave it out where some are not
//   await OpenFeature.setProviderAndWait(tracking.into(new OFREPProvider({ baseUrl: "http://127.0.0.1:8484" })));
//   client.track("purchase", { targetingKey: "user-7" }, { flag: "banner", value: 3.5 });
//   await tracking.track(...);                          // the same, and says what it counted for
export class Tracking {
  constructor(baseUrl, headers = {}) {
    this.url = `${baseUrl.replace(/\/$/, "")}/ofrep/v1/track`;
    this.headers = { "content-type": "application/json", ...headers };
    this.exposures = { after: (context, details) => this.exposed(context.flagKey, context.context, details) };
  }

  // Let a provider's client.track() reach the service.
  into(provider) {
    provider.track = (name, context, details) => this.report(name, context, details);
    return provider;
  }

  async exposed(flag, context, details) {
    const decision = details.flagMetadata?.decision;
    if (decision) await this.report("exposure", context, { flag, decision });
  }

  // An event that is not taken is logged: it must not keep a user from what was decided.
  async report(name, context, details) {
    await this.track(name, context, details).catch((error) => console.warn(`${name} was not tracked: ${error.message}`));
  }

  async track(name, context, details = {}) {
    const body = JSON.stringify({ name, context: { targetingKey: context.targetingKey }, details });
    const answer = await fetch(this.url, { method: "POST", headers: this.headers, body });
    if (!answer.ok) throw new Error(`tracking: ${answer.status} ${await answer.text()}`);
    return (await answer.json()).counted;
  }
}
