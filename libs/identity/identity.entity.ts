import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';
import type { Role } from './roles.js';

/** A user who may sign in. Removed users stay by name, so that the audit log can still name them. */
@Entity('users')
export class UserRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  declare readonly id: number;
  /** As the user writes it, and where e-mails go to. Null some time after the user was removed. */
  @Column('text', { nullable: true }) declare email: string | null;
  /** The key that addresses are compared by. Null when the address is. */
  @Column('text', { nullable: true }) declare email_key: string | null;
  /** When a link or a company confirmed that the user reads the e-mails to it. */
  @Column('timestamptz', { nullable: true }) declare email_confirmed_at: Date | null;
  @Column('text') declare name: string;
  @Column('text') declare password_hash: string;
  /** When a generated password ends. Null: it is the user's own. */
  @Column('timestamptz', { nullable: true }) declare password_expires_at: Date | null;
  @Column('timestamptz') declare created_at: Date;
  @Column('timestamptz', { nullable: true }) declare removed_at: Date | null;
  /** When the user last left a store, or was created. Without a store, they are removed some time after it. */
  @Column('timestamptz', { default: () => 'now()' }) declare left_stores_at: Date;
}

/** Which stores a user may reach, and as what. */
@Entity('memberships')
export class MembershipRow {
  @PrimaryColumn('bigint') declare user_id: number;
  @PrimaryColumn('bigint') declare account_id: number;
  @Column('text') declare role: Role;
  /** The store is this user's own. */
  @Column('boolean', { default: false }) declare personal: boolean;
  @Column('timestamptz') declare created_at: Date;
}

/** An API credential. Only its SHA-256 is stored, so that nobody who reads the database can use it. */
@Entity('api_tokens')
export class ApiTokenRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  declare readonly id: number;
  @Column('bigint') declare user_id: number;
  @Column('text') declare name: string;
  @Column('bytea') declare sha256: Buffer;
  @Column('int', { nullable: true }) declare per_minute: number | null;
  @Column('timestamptz') declare created_at: Date;
  @Column('timestamptz', { nullable: true }) declare expires_at: Date | null;
  /** To the minute. */
  @Column('timestamptz', { nullable: true }) declare last_used_at: Date | null;
  @Column('timestamptz', { nullable: true }) declare revoked_at: Date | null;
  /** Applies where the user's own role has more rights. Null: the user's own does. */
  @Column('text', { nullable: true }) declare role: Role | null;
  /** The only stores that it may access. Null: all of its user. */
  @Column('bigint', { array: true, nullable: true })
  declare account_ids: readonly number[] | null;
  @Column('boolean', { default: false }) declare read_only: boolean;
}
