import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { getNow, getNowMs } from '#platform/kernel/clock.js';
import { loadCheckpointSigner } from '#platform/kernel/checkpoint-key.js';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import type { Signer } from '#platform/kernel/signed-note.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { inTransaction, isTransient } from '#platform/database/connection.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { signCheckpoint, type TreeHead } from './checkpoint.js';
import { CheckpointFolder, type StoredCheckpoint } from './checkpoint-folder.service.js';
import { renderCheckpointMail, isMailDue } from './checkpoint-mail.js';
import { CHECKPOINT_REQUESTED, Checkpoints } from './checkpoints.service.js';
import { Tree } from './tree.service.js';

const SIGNING_INTERVAL_MS = 60_000;
/** How long after it has gone through the folder thinning begins again. */
const THINNING_INTERVAL_MS = 24 * 60 * 60_000;
/** Bounds how often checkpoints are signed on request. */
const MIN_SIGNING_INTERVAL_MS = 1_000;

/** The checkpoint to be signed contradicts an earlier one. */
class ContradictionError extends Error {}

/** Signs the tree every minute and on request, unless that would contradict an earlier checkpoint. */
@Injectable()
export class CheckpointSigning {
  private readonly log = new Logger('checkpoints');
  private readonly signer: Signer | null;
  private readonly refusedGauge: Gauge;
  private readonly signedAtGauge: Gauge;
  private isRefused = false;
  /** Where thinning goes on, and when. */
  private thinning: { from: string | null; dueAt: number } = { from: null, dueAt: 0 };

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
    private readonly tree: Tree,
    private readonly checkpoints: Checkpoints,
    private readonly folder: CheckpointFolder,
    private readonly outbox: MailOutbox,
    private readonly link: ProcessLink,
    registry: Registry,
  ) {
    this.signer = loadCheckpointSigner(config, true);
    this.refusedGauge = new Gauge({
      name: 'inkpad_checkpoint_refused',
      help: '1 while no checkpoint is signed because it would contradict an earlier one',
      registers: [registry],
    });
    this.signedAtGauge = new Gauge({
      name: 'inkpad_checkpoint_signed_timestamp_seconds',
      help: 'When this process last confirmed or signed the newest checkpoint; 0: not yet',
      registers: [registry],
    });
  }

  /** Returns false while the history contradicts a checkpoint. */
  get isConsistent(): boolean {
    return !this.isRefused;
  }

  /** Signs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { signer } = this;
    if (!signer) {
      this.log.warn('CHECKPOINT_KEY is not set: no checkpoints of the history are signed');
      return;
    }
    if (!this.folder.files) {
      this.log.warn(
        'CHECKPOINT_DIR is not set: checkpoints are stored in the database only, where anyone who can rewrite the history can rewrite them too',
      );
    }
    const requests = new WakeSignal();
    const endListening = this.link.listen(CHECKPOINT_REQUESTED, () => requests.wake());
    try {
      while (!signal.aborted) {
        await this.signOnce(signer);
        await this.thinOnce();
        await pause(MIN_SIGNING_INTERVAL_MS, signal);
        await requests.wait(SIGNING_INTERVAL_MS - MIN_SIGNING_INTERVAL_MS, signal);
      }
    } finally {
      endListening();
      // Another process leads from now on, and checks on its own.
      this.isRefused = false;
      this.refusedGauge.set(0);
    }
  }

  private async signOnce(signer: Signer): Promise<void> {
    try {
      await this.sign(signer);
      if (this.isRefused) this.log.log('the history agrees with the checkpoints again');
      this.isRefused = false;
      this.signedAtGauge.set(getNowMs() / 1000);
    } catch (error) {
      if (error instanceof ContradictionError) this.isRefused = true;
      const level = isTransient(error) ? 'warn' : 'error';
      this.log[level](`no checkpoint was signed: ${getErrorMessage(error)}`);
    }
    this.refusedGauge.set(this.isRefused ? 1 : 0);
  }

  /**
   * Deletes some of the old checkpoints that later ones cover: a part of the folder after each signature, so that signing
   * never waits for long. Leaves them all while the history contradicts one.
   */
  private async thinOnce(): Promise<void> {
    const { files } = this.folder;
    if (!files || this.isRefused || performance.now() < this.thinning.dueAt) return;
    try {
      const { deleted, next } = await files.thin(this.thinning.from, getNow());
      if (deleted > 0)
        this.log.log(`${deleted} old checkpoints were deleted: later ones cover them`);
      const dueAt = next === null ? performance.now() + THINNING_INTERVAL_MS : 0;
      this.thinning = { from: next, dueAt };
    } catch (error) {
      // In a folder that lets nobody delete, all of them stay.
      this.log.warn(`old checkpoints stay in ${files.dir}: ${getErrorMessage(error)}`);
      this.thinning = { from: null, dueAt: performance.now() + THINNING_INTERVAL_MS };
    }
  }

  private async sign(signer: Signer): Promise<void> {
    const { edge } = await this.tree.read();
    if (edge.size === 0) return;
    const head = await this.tree.getHead(edge.size);
    const stored = await this.folder.files?.findNewest(signer);
    if (stored) await this.assertConsistent(head, stored);
    const note = signCheckpoint(head, signer);
    if (stored?.size !== head.size) await this.folder.files?.write(head.size, note);
    const newest = await this.checkpoints.findNewest();
    if (newest?.note !== note) await this.checkpoints.publish(head, note);
    await this.sendMail(note, head, { signer, mailedAt: newest?.mailedAt ?? null });
  }

  /** @throws ContradictionError */
  private async assertConsistent({ size }: TreeHead, before: StoredCheckpoint): Promise<void> {
    if (before.size > size) {
      throw new ContradictionError(
        `${before.file} covers ${before.size} events, and the history has only ${size}: events are missing, or a backup was restored (docs/operating/incidents.md, HistoryContradictsCheckpoint)`,
      );
    }
    const now = await this.tree.getHead(before.size);
    if (!now.root.equals(before.root)) {
      throw new ContradictionError(
        `the first ${before.size} events are not those that ${before.file} covers: the history was changed (docs/operating/incidents.md, HistoryContradictsCheckpoint)`,
      );
    }
  }

  /**
   * E-mails the checkpoint each day, even without new events, so that the second party sees that the service still signs.
   */
  private async sendMail(
    note: string,
    { size }: TreeHead,
    { signer, mailedAt }: { signer: Signer; mailedAt: Date | null },
  ): Promise<void> {
    const { mailTo } = this.config.checkpoints;
    if (mailTo === null || !isMailDue(mailedAt, getNow())) return;
    await inTransaction(this.pool, async (client) => {
      await client.query('update transparency_log set mailed_at = now()');
      await this.outbox.add(client, [renderCheckpointMail(mailTo, signer.name, { note, size })]);
    });
  }
}
