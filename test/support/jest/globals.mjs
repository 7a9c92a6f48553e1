/** @type {Record<string, unknown>} */
let globals;

/** Sets what `@jest/globals` exports while a test file runs. */
export function setGlobals(current) {
  globals = current;
}

/** Modules that several test files import are loaded once, so what they import has to follow the current file. */
const current = (name) =>
  new Proxy(() => undefined, {
    apply: (_target, _self, parameters) => globals[name](...parameters),
    get: (_target, key) => globals[name][key],
  });

export const afterAll = current('afterAll');
export const afterEach = current('afterEach');
export const beforeAll = current('beforeAll');
export const beforeEach = current('beforeEach');
export const describe = current('describe');
export const expect = current('expect');
export const it = current('it');
export const jest = current('jest');
export const test = current('test');
