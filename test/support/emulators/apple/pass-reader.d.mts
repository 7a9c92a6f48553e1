import type { PassField, PassJson } from '../../../../libs/outbound/apple-wallet/pass-json.js';

export class RefusedPass extends Error {
  readonly rule: string;
}

export type ReadPass = { pass: PassJson; files: Map<string, Buffer> };

export function readPass(bytes: Buffer, root: string): ReadPass;
export function listFields(pass: PassJson): PassField[];
