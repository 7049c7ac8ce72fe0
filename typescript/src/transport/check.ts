/** Checks that what the hub sends has the form that the description of the agent API gives it. */

import { NOTIFICATIONS, RESULTS, SCHEMAS, type Reply, type ResponseSchema, type Results } from "../agent-api.generated.js";
import { MalformedResponseError } from "../errors.js";

/** Returns the result of a method. Throws {@link MalformedResponseError} if it has another form. */
export function checkResult<M extends keyof Results>(method: M, result: unknown): Results[M] {
  return check(RESULTS[method], result, `the result of ${method}`) as Results[M];
}

/**
 * Returns the parameters of a notification. Returns undefined for an unknown notification, because a newer hub may send notifications that
 * this client does not know.
 */
export function checkNotification(method: string, params: unknown): object | undefined {
  const schema = Object.hasOwn(NOTIFICATIONS, method) ? NOTIFICATIONS[method] : undefined;
  return schema === undefined ? undefined : check(schema, params, method);
}

/** Returns the answer to a question, as a long poll returns it. */
export function checkReply(reply: unknown): Reply {
  return check("Reply", reply, "the answer to a question") as Reply;
}

function check(schema: string, value: unknown, name: string): object {
  const fault = findFault(value, SCHEMAS[schema] ?? { type: "object" }, "");
  if (fault !== undefined) throw new MalformedResponseError(`${name} is malformed: ${fault}`);
  return value as object;
}

function findFault(value: unknown, schema: ResponseSchema, path: string): string | undefined {
  if (schema.enum !== undefined && !schema.enum.includes(value)) return `${path || "it"} has an unknown value`;
  const { type } = schema;
  if (type !== undefined && ![type].flat().some((one) => hasType(value, one))) return `${path || "it"} is not of the type ${String(type)}`;
  if (typeof value === "string") {
    return schema.pattern === undefined || new RegExp(schema.pattern, "u").test(value) ? undefined : `${path} does not match ${schema.pattern}`;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? undefined : firstFault(value.map((item, index) => () => findFault(item, items, `${path}/${index}`)));
  }
  if (typeof value !== "object" || value === null) return undefined;
  const missing = (schema.required ?? []).find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${path}/${missing} is missing`;
  const properties = schema.properties ?? {};
  return firstFault(
    Object.entries(value).map(([name, member]) => () => {
      const described = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
      return described === undefined ? undefined : findFault(member, described, `${path}/${name}`);
    }),
  );
}

function firstFault(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const run of checks) {
    const fault = run();
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
