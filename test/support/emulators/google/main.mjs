import { parseArgs } from 'node:util';
import { startGoogleWallet } from './server.mjs';

/** A Google Wallet for demonstrations: prints the settings of a service that is to use it, one a line. */
const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } });
const wallet = await startGoogleWallet({ port: Number(values.port), allowHttp: true });
for (const [name, value] of Object.entries(wallet.environment)) console.log(`${name}=${value}`);
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => void wallet.stop());
