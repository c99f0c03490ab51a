"""The look of cards and tables: JupyterLab's theme where there is one, else the page's own colours."""

CSS = """
.yaosb{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:var(--jp-ui-font-size1,13px);line-height:1.5;
--y-line:var(--jp-border-color2,rgba(128,128,128,.3));--y-dim:var(--jp-ui-font-color2,rgba(128,128,128,1));
--y-soft:var(--jp-layout-color2,rgba(128,128,128,.12));color:var(--jp-ui-font-color1,inherit);padding:2px 0}
.yaosb .y-card{display:inline-block;box-sizing:border-box;min-width:min(26em,100%);max-width:62em;
border:1px solid var(--y-line);border-radius:6px;overflow:hidden}
.yaosb .y-head{display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 10px;padding:7px 12px;
border-bottom:1px solid var(--y-line)}
.yaosb .y-title{font-weight:600;overflow-wrap:anywhere}
.yaosb .y-caption{margin-bottom:3px}
.yaosb .y-sub{color:var(--y-dim)}
.yaosb .y-body{padding:7px 12px 8px}
.yaosb dl.y-facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:1px 16px;margin:0}
.yaosb dl.y-facts dt{margin:0;padding:0;float:none;width:auto;white-space:nowrap;
font-weight:400;font-style:normal;color:var(--y-dim)}
.yaosb dl.y-facts dd{margin:0;padding:0;float:none;width:auto;overflow-wrap:anywhere}
.yaosb details{margin-top:6px}
.yaosb summary{cursor:pointer;color:var(--y-dim)}
.yaosb details dl.y-facts{margin:4px 0 0 14px}
.yaosb .y-note{margin-top:6px;color:var(--y-dim)}
.yaosb .y-state{display:inline-flex;align-items:baseline;gap:6px;white-space:nowrap}
.yaosb .y-state::before{content:"";flex:none;width:8px;height:8px;border-radius:50%;background:var(--y-tone)}
.yaosb .y-ok{--y-tone:var(--jp-success-color1,#388e3c)}
.yaosb .y-busy{--y-tone:var(--jp-info-color1,#0288d1)}
.yaosb .y-idle{--y-tone:var(--jp-ui-font-color3,#9e9e9e)}
.yaosb .y-bad{--y-tone:var(--jp-error-color1,#d32f2f)}
.yaosb table.y-table{border-collapse:collapse;border:0;margin:0;font-size:inherit;width:auto}
.yaosb table.y-table th,.yaosb table.y-table td{text-align:left;vertical-align:top;padding:3px 18px 3px 0;border:0;
border-bottom:1px solid var(--y-line);background:none;max-width:44em;overflow-wrap:anywhere;white-space:normal}
.yaosb table.y-table th{color:var(--y-dim);font-weight:400;white-space:nowrap}
.yaosb table.y-table tr:last-child td{border-bottom:0}
.yaosb table.y-table tr,.yaosb table.y-table tr:hover{background:none}
.yaosb table.y-table .y-right{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.yaosb table.y-table .y-strong{font-weight:600}
.yaosb iframe.y-frame{display:block;width:100%;height:480px;margin-top:6px;border:1px solid var(--y-line);
border-radius:6px;background:#fff}
.yaosb .y-track{height:4px;border-radius:2px;background:var(--y-soft);overflow:hidden;margin:4px 0 2px;
width:22em;max-width:100%}
.yaosb .y-bar{height:100%;background:var(--jp-brand-color1,#1976d2)}
""".strip()
