import type { IncomingHttpHeaders } from 'node:http2';
import type { AppleCertificates } from './certificates.mjs';

export type ApnsReply = {
  status: number;
  reason?: string;
  headers?: Record<string, string>;
  timestamp?: number;
};

export class Apns {
  static start(
    certificates: Pick<AppleCertificates, 'server' | 'root' | 'wwdr'>,
    port?: number,
  ): Promise<Apns>;
  readonly url: string;
  readonly port: number;
  readonly connections: number;
  readonly pushes: { token: string; headers: IncomingHttpHeaders }[];
  register(token: string, onPush?: () => void): void;
  unregister(token: string, at?: number): void;
  trust(id: string, key: string, team: string): void;
  respondWith(reply: ApnsReply | null): void;
  fallSilent(): void;
  goAway(): void;
  stop(): Promise<void>;
  restart(): Promise<void>;
}
