// Outcomes for flags that armwise answers: OpenFeature's own track(), whose events the protocol has no endpoint for.
//
//   const tracking = new Tracking("http://127.0.0.1:8000", { "X-API-Key": key });
//   OpenFeature.addHooks(tracking.exposures);           // every evaluation was shown; leave it out where some are not
//   await tracking.track("purchase", { targetingKey: "user-7" }, { flag: "banner", value: 3.5 });
export class Tracking {
  constructor(baseUrl, headers = {}) {
    this.url = `${baseUrl.replace(/\/$/, "")}/ofrep/v1/track`;
    this.headers = { "content-type": "application/json", ...headers };
    this.exposures = { after: (context, details) => this.exposed(context.flagKey, context.context, details) };
  }

  async exposed(flag, context, details) {
    const decision = details.flagMetadata?.decision;
    if (decision) await this.track("exposure", context, { flag, decision });
  }

  async track(name, context, details = {}) {
    const body = JSON.stringify({ name, context: { targetingKey: context.targetingKey }, details });
    const answer = await fetch(this.url, { method: "POST", headers: this.headers, body });
    if (!answer.ok) throw new Error(`tracking: ${answer.status} ${await answer.text()}`);
    return (await answer.json()).counted;
  }
}
