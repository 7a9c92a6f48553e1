import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { StartFailure } from './start-failure.mjs';

export const LOOPBACK = '127.0.0.1';
export const EVERYWHERE = '0.0.0.0';

/** Adds what .env says to the environment, for `npm start` and every command alike. What is set already stays, even if empty. */
export function loadEnvironment(root) {
  const file = path.join(root, '.env');
  let text;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return;
    const why = error.code === 'EISDIR' ? 'it is a folder' : error.code;
    throw new StartFailure(`The settings in ${file} cannot be read (${why}).`);
  }
  for (const [name, value] of Object.entries(parseEnv(text))) process.env[name] ??= value;
}

/** Reads the settings of `npm start` itself; the programs read all others. */
export function readSettings(root) {
  loadEnvironment(root);
  const port = Number(process.env.PORT || 3000);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new StartFailure(`PORT must be a number from 1 to 65535, not "${process.env.PORT}".`);
  }
  const publicUrl = (process.env.PUBLIC_URL || `http://localhost:${port}`).replace(/\/+$/, '');
  const insecureTargets = allowsInsecureTargets(publicUrl);
  return {
    port,
    publicUrl,
    insecureTargets,
    host: process.env.HOST || (insecureTargets ? LOOPBACK : EVERYWHERE),
    dataDir: path.resolve(root, process.env.DATA_DIR || '.data'),
    databaseUrl: readSetting('DATABASE_URL'),
    databaseMigrationUrl: readSetting('DATABASE_MIGRATION_URL'),
  };
}

/** Checks the settings of the programs, which are built, before a database is created for them. */
export async function checkSettings(root, databaseUrl) {
  const file = path.join(root, 'dist', 'libs', 'configuration', 'config.js');
  const { readConfig } = await import(pathToFileURL(file).href);
  // The programs get the URL of the database of this start, which does not run yet.
  const env = databaseUrl ? process.env : { ...process.env, DATABASE_URL: 'postgres://localhost/' };
  try {
    readConfig(env);
  } catch (error) {
    throw new StartFailure(error.message);
  }
}

/** Reads a setting, or the content of the file that its `…_FILE` names. */
function readSetting(name) {
  const file = process.env[`${name}_FILE`];
  if (process.env[name] || !file) return process.env[name] || null;
  let text;
  try {
    text = fs.readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartFailure(`${name}_FILE: ${file} cannot be read (${error.code}).`);
  }
  // Taken for no database, it would start a new and empty one.
  if (text === '') throw new StartFailure(`${name}_FILE: ${file} is empty.`);
  return text;
}

/**
 * Tells whether webhooks may go to this machine, which they may when somebody tries Inkpad out on it; a service with a
 * public address never allows it by default.
 */
function allowsInsecureTargets(publicUrl) {
  const setting = process.env.WEBHOOK_ALLOW_INSECURE_TARGETS;
  if (setting) return ['true', '1'].includes(setting);
  if (process.env.NODE_ENV === 'production' || !URL.canParse(publicUrl)) return false;
  return isLocal(new URL(publicUrl).hostname);
}

export function isLocal(host) {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127\.[\d.]+$/.test(host);
}

/** Loads what runs a program on the database of `npm start`, which the image does not have. */
export async function loadEmbeddedRun() {
  try {
    return await import('./local-postgres/embedded-run.mjs');
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new StartFailure(
      'DATABASE_URL is not set, and there is no PostgreSQL here that could be started: set DATABASE_URL and DATABASE_MIGRATION_URL.',
    );
  }
}
