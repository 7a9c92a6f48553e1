/**
 * Names the types of the Fetch standard that the client takes and returns. They are those of the program: from
 * @types/node, from TypeScript's lib `dom`, or, if it has neither, the few members that are used here.
 */
type Global<Name extends string, Otherwise> = typeof globalThis extends {
  [N in Name]: { prototype: infer T };
}
  ? T
  : Otherwise;

export type WebHeaders = Global<
  'Headers',
  {
    get(name: string): string | null;
    has(name: string): boolean;
    forEach(callback: (value: string, name: string) => void): void;
  }
>;

export type WebAbortSignal = Global<
  'AbortSignal',
  { readonly aborted: boolean; throwIfAborted(): void }
>;

export type WebBlob = Global<'Blob', { readonly size: number; readonly type: string }>;

export type WebFetch = typeof globalThis extends { fetch: infer T }
  ? T
  : (url: never, init?: never) => Promise<unknown>;
