import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';
import type { Actor, Channel } from '#platform/kernel/aggregate.js';

/** An audit entry for a record that is not event-sourced. Event-sourced ones have their streams instead. */
@Entity('audit_log')
export class AuditEntryRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  declare readonly id: number;
  /** An entry about several accounts is written once for each; null when it is about none. */
  @Column('bigint', { nullable: true }) declare account_id: number | null;
  /** `<record>.<past tense>`, such as `token.revoked`. */
  @Column('text') declare type: string;
  @Column('jsonb') declare actor: Actor;
  @Column('text') declare channel: Channel;
  @Column('text') declare request_id: string;
  /** Null where nobody was connected, and after 90 days. */
  @Column('inet', { nullable: true }) declare ip_address: string | null;
  /** Ids and what changed; never a secret. */
  @Column('jsonb') declare subject: object;
  @Column('timestamptz') declare recorded_at: Date;
}
